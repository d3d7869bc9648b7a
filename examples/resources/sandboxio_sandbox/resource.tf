# Any image that your engine can pull, such as "python:3.13-slim".
variable "image" {
  type    = string
  default = "sandboxio-test/busybox:1"
}

resource "sandboxio_sandbox" "dev" {
  backend = "docker"
  name    = "dev"
  image   = var.image

  # Never less: a backend that can't give it refuses the plan.
  require_isolation = "container"

  resources = {
    cpu       = 0.5
    memory_mb = 256
  }

  network = {
    egress = "deny"
  }

  # The sandbox ends itself after that, whether Terraform runs or not.
  ttl = "1h"

  working_dir = "/tmp"
  env = {
    STAGE = "dev"
  }
  labels = {
    purpose = "example"
  }

  timeouts = {
    create = "5m"
  }
}

# With a command of its own, which must keep running, and a probe that says when the
# sandbox is ready.
resource "sandboxio_sandbox" "server" {
  backend = "docker"
  image   = var.image
  command = ["httpd", "-f", "-p", "8080", "-h", "/tmp"]
  user    = "65534"

  readiness = {
    tcp_port = 8080
    interval = "500ms"
    timeout  = "30s"
  }

  docker = {
    read_only = true
  }
}
