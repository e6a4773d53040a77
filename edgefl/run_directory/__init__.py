"""A run on disk, with tables and status, the journal of its learners' answers, and the code that resumes it."""
