// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux

// Command guest runs inside a Docker sandbox: it is its first process, supervises
// each execution, and works on files. It is mounted read-only, needs nothing from the
// image, and speaks internal/guest/protocol. Package protocol's ...Args functions are
// its command line.
//
// It is kept small, since it is embedded: no fmt, no net, no encoding/json.
package main

import (
	"os"
	"strconv"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		fatal("no subcommand")
	}
	verb, args := args[0], args[1:]
	switch {
	case verb == "init" && len(args) >= 1:
		runInit(number(args[0]), args[1:])
	case verb == "exec" && len(args) >= 3:
		runExec(number(args[0]), args[1], args[2:])
	case verb == "install" && len(args) == 1:
		if err := install(args[0]); err != nil {
			fatal(err.Error())
		}
	default:
		answer(verb, args)
	}
}

// answer serves the subcommands that do one thing and end.
func answer(verb string, args []string) {
	out := protocol.NewWriter(os.Stdout)
	if out.WriteHello() != nil {
		os.Exit(1)
	}
	var err error
	switch {
	case verb == "read" && len(args) == 1:
		err = readFile(args[0], out)
	case verb == "write" && len(args) == 2:
		err = writeFile(args[0], args[1], protocol.NewReader(os.Stdin), out)
	case verb == "list" && len(args) == 1:
		err = list(args[0], out)
	case verb == "stat" && len(args) == 1:
		err = stat(args[0], out)
	case verb == "mkdir" && len(args) == 1:
		err = os.MkdirAll(args[0], 0o777)
	case verb == "remove" && len(args) == 1:
		err = remove(args[0])
	case verb == "probe" && len(args) == 1:
		err = probe(int(number(args[0])))
	default:
		fatal("unknown subcommand " + verb)
	}
	if out.WriteEnd(terminalOf(err)) != nil {
		os.Exit(1)
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		fatal("not a number: " + s)
	}
	return n
}

// say writes a line to stderr, which for PID 1 is the sandbox's log.
func say(line string) { _, _ = os.Stderr.WriteString("sandboxio: " + line + "\n") }

func fatal(line string) {
	say(line)
	os.Exit(1)
}
