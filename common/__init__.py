"""The harness of the course: finds pairs, proves their halves equal, times them, and says what may be believed."""
