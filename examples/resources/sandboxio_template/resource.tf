# Any image that your engine can pull, such as "python:3.13-slim".
variable "image" {
  type    = string
  default = "sandboxio-test/busybox:1"
}

# The image is there before a sandbox needs it.
resource "sandboxio_template" "base" {
  backend     = "docker"
  image       = var.image
  pull_policy = "missing"
}

# By its template, a sandbox is made from exactly that content, wherever the tag moves.
resource "sandboxio_sandbox" "dev" {
  backend     = "docker"
  template_id = sandboxio_template.base.template_id
}
