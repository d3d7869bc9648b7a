// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Command testgate makes a green test run mean something. It reads `go test -json`
// from standard input, prints one line for each package that passed and the whole
// output of each test that failed, and fails where `go test` itself would not: when
// an acceptance test was skipped, when none passed, and at any other skip whose
// reason isn't allowed by name. Its last line is "N passed, N failed, N skipped".
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	var allowed []string
	flag.Func("allow-skip", "a `text` in the reason of a skip that is fine; may be repeated", func(text string) error {
		if strings.TrimSpace(text) == "" {
			return errors.New("an empty text would allow every skip")
		}
		allowed = append(allowed, text)
		return nil
	})
	flag.Parse()

	start := time.Now()
	r := newReport(os.Stdout)
	err := r.read(os.Stdin)
	ok := r.close(allowed, time.Since(start))
	if err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}
