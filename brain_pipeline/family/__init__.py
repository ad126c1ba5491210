"""What the family's mail is about: when."""
