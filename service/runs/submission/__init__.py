"""What is checked, looked up and planned when an evaluation is submitted."""
