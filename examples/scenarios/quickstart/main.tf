# One sandbox with caps and without a network, and a command that runs in it.

terraform {
  required_version = ">= 1.11"

  required_providers {
    sandboxio = {
      source = "sandboxio/sandboxio"
    }
  }
}

# Any image that your engine can pull, such as "debian:bookworm-slim". The default is
# the tests' own, which scripts/ensure-image.sh makes without a registry.
variable "image" {
  type    = string
  default = "sandboxio-test/busybox:1"
}

variable "owner" {
  type    = string
  default = "quickstart"
}

provider "sandboxio" {
  default_backend = "docker"
  owner           = var.owner
}

resource "sandboxio_sandbox" "dev" {
  name              = "quickstart"
  image             = var.image
  require_isolation = "container"

  resources = {
    cpu       = 0.5
    memory_mb = 256
  }

  network = {
    egress = "deny"
  }
}

data "sandboxio_exec" "hello" {
  sandbox_id = sandboxio_sandbox.dev.id
  script     = "echo 'this is stdout'; echo 'this is stderr' >&2; exit 7"
}

output "sandbox_id" {
  value = sandboxio_sandbox.dev.sandbox_id
}

output "exit_code" {
  value = data.sandboxio_exec.hello.exit_code
}

output "stdout" {
  value = data.sandboxio_exec.hello.stdout
}

output "stderr" {
  value = data.sandboxio_exec.hello.stderr
}
