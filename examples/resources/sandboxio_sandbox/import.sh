# By the backend and the sandbox's id; on Docker also by the container's name.
terraform import sandboxio_sandbox.dev docker/sandboxio-dev-25d890f4
