"""The proof of the diagnosis: programs whose cause of trouble is known, and a score of what ``tfmemtop why`` says."""
