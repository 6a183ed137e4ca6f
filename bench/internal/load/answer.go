package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

var (
	contentLength    = []byte("content-length:")
	transferEncoding = []byte("transfer-encoding:")
	chunked          = []byte("chunked")
)

// readAnswer reads one answer to its end and returns its status and the length of its body. Of
// HTTP/1.1 it supports what the measured servers use: Content-Length and chunks.
func readAnswer(r *bufio.Reader) (status, length int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, 0, fmt.Errorf("no status line: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, fmt.Errorf("no status line: %q", line)
	}
	length = -1
	inChunks := false
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return 0, 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		switch {
		case hasPrefixFold(line, contentLength):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, 0, err
			}
		case hasPrefixFold(line, transferEncoding):
			inChunks = bytes.EqualFold(bytes.TrimSpace(line[len(transferEncoding):]), chunked)
		}
	}
	switch {
	case inChunks:
		length, err = discardChunks(r)
	case length >= 0:
		_, err = r.Discard(length)
	default:
		err = errors.New("an answer without a length")
	}
	return status, length, err
}

func hasPrefixFold(line, prefix []byte) bool {
	return len(line) >= len(prefix) && bytes.EqualFold(line[:len(prefix)], prefix)
}

func discardChunks(r *bufio.Reader) (length int, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return length, err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return length, fmt.Errorf("no chunk size: %q", line)
		}
		if _, err := r.Discard(int(size) + len("\r\n")); err != nil {
			return length, err
		}
		if size == 0 {
			return length, nil
		}
		length += int(size)
	}
}
