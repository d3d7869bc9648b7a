// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

// Package protocol is what the host and the guest helper say to each other over the
// standard streams of one engine exec, and the one definition of the guest's
// command line.
//
// Each direction is a sequence of frames: one byte kind, four bytes big-endian
// length, payload. The guest begins with a hello frame, so that text of the engine
// in the same stream is told apart, and ends with exactly one terminal frame: a
// stream that ends without it was cut. The end of the guest's stdin means that the
// client is gone.
package protocol

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// Kind is the kind of a frame.
type Kind byte

// The frames of the client.
const (
	StdinData  Kind = 'i'
	CloseStdin Kind = 'c'
	Kill       Kind = 'k'
)

// The frames of the guest.
const (
	Hello  Kind = 'S' // payload: magic and version
	Stdout Kind = 'o'
	Stderr Kind = 'e'
	End    Kind = 't' // payload: an encoded Terminal
	// Ack says that one StdinData frame was passed on.
	Ack Kind = 'a'
)

const (
	magic = "sandboxio-guest\x001"
	// MaxData is the most payload that a data frame carries, in bytes.
	MaxData = 64 << 10
	// maxFrame bounds what a reader accepts, in bytes.
	maxFrame = 1 << 20
	// StdinWindow is how many StdinData frames a client may send beyond those that
	// were acknowledged. The guest can hold that many, so it always reads on, and sees
	// a Kill behind data that nobody reads.
	StdinWindow = 16
	headerLen   = 5
	// maxForeign is how much of foreign text is kept, in bytes.
	maxForeign = 4 << 10
)

// Frame is one message. Payload is valid until the next call of Next.
type Frame struct {
	Kind    Kind
	Payload []byte
}

// Writer writes frames. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one frame in one call of the underlying Write.
func (w *Writer) Write(kind Kind, payload []byte) error {
	if len(payload) > maxFrame {
		return errors.New("frame too long")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf[:0], byte(kind))
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(payload)))
	w.buf = append(w.buf, payload...)
	_, err := w.w.Write(w.buf)
	return err
}

// WriteHello writes the guest's first frame.
func (w *Writer) WriteHello() error { return w.Write(Hello, []byte(magic)) }

// WriteData writes data as frames of kind, each of at most MaxData.
func (w *Writer) WriteData(kind Kind, data []byte) error {
	for len(data) > 0 {
		n := min(len(data), MaxData)
		if err := w.Write(kind, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Reader reads frames.
type Reader struct {
	r      io.Reader
	header [headerLen]byte
	buf    []byte
	greet  bool
}

// NewReader returns a Reader of the client's frames, which begin at once.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// NewGuestReader returns a Reader of the guest's frames. Its first Next consumes the
// hello, and is a [*ForeignError] where there is none.
func NewGuestReader(r io.Reader) *Reader { return &Reader{r: r, greet: true} }

// ForeignError says that something else than the guest spoke: an engine that
// couldn't start it.
type ForeignError struct{ Text string }

func (e *ForeignError) Error() string { return "not the guest: " + e.Text }

// ErrMalformed is a frame that no writer of this package wrote.
var ErrMalformed = errors.New("malformed frame")

// Next returns the next frame. io.EOF: the stream ended between two frames.
func (r *Reader) Next() (Frame, error) {
	if r.greet {
		if err := r.readHello(); err != nil {
			return Frame{}, err
		}
		r.greet = false
	}
	if _, err := io.ReadFull(r.r, r.header[:]); err != nil {
		return Frame{}, err
	}
	n := int(binary.BigEndian.Uint32(r.header[1:]))
	if n > maxFrame {
		return Frame{}, ErrMalformed
	}
	if cap(r.buf) < n {
		r.buf = make([]byte, n, max(n, MaxData))
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return Frame{}, io.ErrUnexpectedEOF
	}
	return Frame{Kind(r.header[0]), r.buf}, nil
}

func (r *Reader) readHello() error {
	want := append([]byte{byte(Hello), 0, 0, 0, byte(len(magic))}, magic...)
	got := make([]byte, len(want))
	n, err := io.ReadFull(r.r, got)
	if err == nil && string(got) == string(want) {
		return nil
	}
	if n == 0 {
		return err
	}
	rest, _ := io.ReadAll(io.LimitReader(r.r, maxForeign-int64(n)))
	return &ForeignError{Text: string(append(got[:n], rest...))}
}
