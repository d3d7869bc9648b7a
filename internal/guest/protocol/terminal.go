// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

package protocol

import "encoding/binary"

// Outcome is how an execution ended.
type Outcome byte

// The outcomes.
const (
	// Exited: Code is the exit code, 128+signal for a signal.
	Exited Outcome = iota + 1
	// TimedOut: the timeout passed, and the process tree was killed.
	TimedOut
	// Killed: the client asked for it or went away.
	Killed
	// CannotStart: the program never ran; Reason and Message say why.
	CannotStart
	// Failed: a file operation or a probe failed; Reason and Message say why.
	Failed
)

// Reason says why something failed.
type Reason byte

// The reasons.
const (
	Other Reason = iota
	NotFound
	Permission
	WorkingDir
	Exists
	IsDir
	NotDir
	ReadOnly
	NoSpace
	Refused
)

// Terminal is the last thing that the guest says.
type Terminal struct {
	Outcome Outcome
	Reason  Reason
	Code    int
	Message string
}

// WriteEnd writes the terminal frame.
func (w *Writer) WriteEnd(t Terminal) error {
	payload := []byte{byte(t.Outcome), byte(t.Reason)}
	payload = binary.BigEndian.AppendUint32(payload, uint32(t.Code))
	return w.Write(End, append(payload, t.Message...))
}

// DecodeTerminal decodes the payload of an End frame.
func DecodeTerminal(payload []byte) (Terminal, error) {
	if len(payload) < 6 {
		return Terminal{}, ErrMalformed
	}
	return Terminal{
		Outcome: Outcome(payload[0]), Reason: Reason(payload[1]),
		Code: int(int32(binary.BigEndian.Uint32(payload[2:]))), Message: string(payload[6:]),
	}, nil
}

// Entry is one file of a listing.
type Entry struct {
	// Path is as the client wrote it, with the name appended in a listing.
	Path  string
	Size  int64
	Mode  uint32 // permission bits
	IsDir bool
}

// AppendEntry appends the encoding of e to b.
func AppendEntry(b []byte, e Entry) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(e.Size))
	b = binary.BigEndian.AppendUint32(b, e.Mode)
	dir := byte(0)
	if e.IsDir {
		dir = 1
	}
	b = append(b, dir)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Path)))
	return append(b, e.Path...)
}

// DecodeEntries decodes all entries in b.
func DecodeEntries(b []byte) ([]Entry, error) {
	var entries []Entry
	for len(b) > 0 {
		if len(b) < 17 {
			return nil, ErrMalformed
		}
		e := Entry{Size: int64(binary.BigEndian.Uint64(b)), Mode: binary.BigEndian.Uint32(b[8:]), IsDir: b[12] == 1}
		n := int(binary.BigEndian.Uint32(b[13:]))
		b = b[17:]
		if n > len(b) {
			return nil, ErrMalformed
		}
		e.Path, b = string(b[:n]), b[n:]
		entries = append(entries, e)
	}
	return entries, nil
}
