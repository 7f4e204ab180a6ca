"""Whether an answer is right and honestly computed. Nothing here depends on pairs or rounds."""
