"""Is an answer right, and was it come by honestly? Nothing here knows of pairs or of rounds."""
