"""What a run would find here, looked at without starting anything of the user's but a bare interpreter."""
