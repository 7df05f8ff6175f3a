"""What commands show of workers: how they stand, how they began and ended, and what was asked, sent and said."""
