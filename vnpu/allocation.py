"""What a container gets: environment and mounts."""
