// Copyright (c) The terraform-provider-sandboxio authors
// SPDX-License-Identifier: MPL-2.0

//go:build linux

package main

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/protocol"
)

func readFile(path string, out *protocol.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return err
	} else if info.IsDir() {
		return &os.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	buf := make([]byte, protocol.MaxData)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if err := out.Write(protocol.Stdout, buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// writeFile replaces path by a rename, so that no reader sees half of it, and a
// client that goes away before the end changes nothing.
func writeFile(path, octal string, in *protocol.Reader, out *protocol.Writer) error {
	mode, err := strconv.ParseUint(octal, 8, 12)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	}
	temp := path + ".sandboxio-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = receive(f, in, out)
	if err == nil {
		err = f.Chmod(os.FileMode(mode))
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

func receive(f *os.File, in *protocol.Reader, out *protocol.Writer) error {
	for {
		frame, err := in.Next()
		if err != nil {
			return io.ErrUnexpectedEOF
		}
		switch frame.Kind {
		case protocol.StdinData:
			if _, err := f.Write(frame.Payload); err != nil {
				return err
			}
			if err := out.Write(protocol.Ack, nil); err != nil {
				return err
			}
		case protocol.CloseStdin:
			return nil
		case protocol.Kill:
			return &failure{protocol.Other, "killed"}
		}
	}
}

func list(path string, out *protocol.Writer) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if os.IsNotExist(err) {
			continue // removed meanwhile
		}
		if err != nil {
			return err
		}
		if err := send(path+"/"+e.Name(), info, out); err != nil {
			return err
		}
	}
	return nil
}

func stat(path string, out *protocol.Writer) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return send(path, info, out)
}

func send(path string, info os.FileInfo, out *protocol.Writer) error {
	return out.Write(protocol.Stdout, protocol.AppendEntry(nil, protocol.Entry{
		Path: path, Size: info.Size(), Mode: uint32(info.Mode().Perm()), IsDir: info.IsDir(),
	}))
}

func remove(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// probe connects to a TCP port of the loopback interface, by IPv4 and then IPv6.
func probe(port int) error {
	err := connect(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err != nil && connect(unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}) == nil {
		return nil
	}
	return err
}

func connect(family int, address unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, address)
}
