"""What a session is for Prometheus: samples out of the state, a page that answers with them, a file that holds them."""
