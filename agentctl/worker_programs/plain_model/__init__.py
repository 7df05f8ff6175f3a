"""The agent program of the driver `llm`: models, tools and a loop, for those who have a model but no agent program.

Its host runs it as it runs any other program, and speaks to it in lines of JSON:

in      {"type": "open", ...}, {"type": "prompt", "text", "now"}, {"type": "answer", "key", "answer", "reason"},
        {"type": "interrupt"}; the end of the input ends the program
out     session, text, thought, tool_call, tool_result, usage, windows, ask, withdraw, retrying, progress, compacted,
        note, turn_end
"""
