# Any image that your engine can pull, such as "python:3.13-slim".
variable "image" {
  type    = string
  default = "sandboxio-test/busybox:1"
}

resource "sandboxio_sandbox" "dev" {
  backend = "docker"
  image   = var.image
}

# A command that only looks: it runs at every read.
data "sandboxio_exec" "kernel" {
  sandbox_id    = sandboxio_sandbox.dev.id
  command       = ["uname", "-r"]
  timeout       = "10s"
  fail_on_error = true
}

# A script, with input of its own. A non-zero exit code is a result like any other.
data "sandboxio_exec" "words" {
  sandbox_id       = sandboxio_sandbox.dev.id
  script           = "wc -w; test -e /absent"
  stdin            = "three small words"
  working_dir      = "/tmp"
  max_output_bytes = 4096

  env = {
    LANG = "C"
  }
}

output "kernel" {
  value = trimspace(data.sandboxio_exec.kernel.stdout)
}

output "words" {
  value = data.sandboxio_exec.words.ok ? data.sandboxio_exec.words.stdout : "exit code ${data.sandboxio_exec.words.exit_code}"
}
