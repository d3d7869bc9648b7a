// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package protocol

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestFramesGoThrough(t *testing.T) {
	t.Parallel()
	var stream bytes.Buffer
	w := NewWriter(&stream)
	end := Terminal{Outcome: CannotStart, Reason: NotFound, Code: -1, Message: "why"}
	for _, err := range []error{w.WriteHello(), w.WriteData(Stdout, bytes.Repeat([]byte("x"), MaxData+1)), w.WriteEnd(end)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := NewGuestReader(&stream)
	for _, want := range []struct {
		kind Kind
		size int
	}{{Stdout, MaxData}, {Stdout, 1}, {End, 9}} {
		f, err := r.Next()
		if err != nil || f.Kind != want.kind || len(f.Payload) != want.size {
			t.Fatalf("%c of %d bytes, %v", f.Kind, len(f.Payload), err)
		}
		if f.Kind == End {
			if got, err := DecodeTerminal(f.Payload); err != nil || got != end {
				t.Errorf("%+v, %v", got, err)
			}
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want EOF", err)
	}
}

func TestForeignTextIsToldApart(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "OCI runtime exec failed: " + strings.Repeat("y", 10000)} {
		_, err := NewGuestReader(strings.NewReader(text)).Next()
		foreign, ok := errors.AsType[*ForeignError](err)
		if !ok || !strings.HasPrefix(text, foreign.Text) || len(foreign.Text) > maxForeign {
			t.Errorf("%v", err)
		}
	}
	if _, err := NewGuestReader(strings.NewReader("")).Next(); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want EOF", err)
	}
}

func TestCutAndOversizedFrames(t *testing.T) {
	t.Parallel()
	if _, err := NewReader(strings.NewReader("o\x00\x00\x00\x05ab")).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want an unexpected end", err)
	}
	if _, err := NewReader(strings.NewReader("o\xff\xff\xff\xff")).Next(); !errors.Is(err, ErrMalformed) {
		t.Errorf("%v, want malformed", err)
	}
}

func TestEntriesGoThrough(t *testing.T) {
	t.Parallel()
	want := []Entry{{Path: "/a\n\xff", Size: 1 << 40, Mode: 0o640}, {Path: "/", IsDir: true}}
	var b []byte
	for _, e := range want {
		b = AppendEntry(b, e)
	}
	if got, err := DecodeEntries(b); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := DecodeEntries(b[:len(b)-1]); !errors.Is(err, ErrMalformed) {
		t.Errorf("%v, want malformed", err)
	}
}

func FuzzReader(f *testing.F) {
	var good bytes.Buffer
	w := NewWriter(&good)
	_ = w.WriteHello()
	_ = w.WriteData(Stdout, []byte("x"))
	f.Add(good.Bytes())
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewGuestReader(bytes.NewReader(stream))
		for {
			frame, err := r.Next()
			if err != nil {
				return
			}
			_, _ = DecodeTerminal(frame.Payload)
			_, _ = DecodeEntries(frame.Payload)
			if len(frame.Payload) > maxFrame {
				t.Fatal("a frame over the limit")
			}
		}
	})
}
