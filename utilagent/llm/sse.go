package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxReply bounds a reply, so that a broken endpoint cannot fill the memory.
const maxReply = 64 << 20

// maxPieces bounds the lines of one event: each is tried as the end of it.
const maxPieces = 1000

var (
	errTooLong  = errors.New("the reply is longer than 64 MiB")
	errBadEvent = errors.New("an event of the stream is not JSON")
)

// readEvents calls f with the JSON of each server-sent event, until the stream
// ends, f fails, or [DONE] comes (done is then true).
//
// Servers deviate from the standard: lines end in LF or CR LF, the space after
// "data:" and the empty line between events may be missing, and one JSON text
// may be spread over several data lines. So an event is complete as soon as
// what was collected is JSON.
func readEvents(r *bufio.Reader, f func(data []byte) error) (done bool, err error) {
	var event []byte
	pieces := 0
	for {
		line, readErr := r.ReadBytes('\n')
		data, isData := dataOf(line)
		if isData && len(event) == 0 && bytes.Equal(data, []byte("[DONE]")) {
			return true, nil
		}
		if isData {
			event = append(event, data...)
			if pieces++; json.Valid(event) {
				if err := f(event); err != nil {
					return false, err
				}
				event, pieces = nil, 0
			} else {
				event = append(event, '\n')
			}
		}
		if len(event) > 0 && readErr == nil && (len(bytes.TrimSpace(line)) == 0 || pieces > maxPieces) {
			return false, errBadEvent
		}
		if errors.Is(readErr, io.EOF) {
			return false, nil
		}
		if readErr != nil {
			return false, readErr
		}
	}
}

// bounded reads at most maxReply bytes and then fails, before a line that never
// ends has filled the memory.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// dataOf returns the value of a data line, without white space around it.
func dataOf(line []byte) ([]byte, bool) {
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	data = bytes.TrimSpace(data)
	return data, ok && len(data) > 0
}
