"""What a person is told, where, when and in which words.

Doors: `answer_links`, `notice_messages`, `notices`, `quiet`, `targets`.
"""
