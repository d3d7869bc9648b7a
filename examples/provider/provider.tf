terraform {
  required_providers {
    sandboxio = {
      source = "sandboxio/sandboxio"
    }
  }
}

provider "sandboxio" {
  default_backend = "docker"

  # Whom the sandboxes belong to. They carry it as a label.
  owner = "team-a/${terraform.workspace}"

  default_labels = {
    project = "checkout"
  }

  # Leave it out, and the engine is found as the Docker CLI finds it.
  docker = {
    host = "unix:///var/run/docker.sock"
  }
}
