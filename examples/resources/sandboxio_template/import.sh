# By the backend and the template's id or the image.
terraform import sandboxio_template.base docker/debian:bookworm-slim
