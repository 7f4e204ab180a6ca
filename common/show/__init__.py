"""Results as tables, on the console and in Markdown, and as figures."""
