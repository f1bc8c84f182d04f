"""What the command line prints: tables, summaries, texts in colour, progress; and how signals end it."""
