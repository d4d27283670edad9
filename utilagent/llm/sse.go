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
	total := 0
	for {
		line, readErr := r.ReadBytes('\n')
		if total += len(line); total > maxReply {
			return false, errTooLong
		}
		data, isData := dataOf(line)
		if isData && len(event) == 0 && bytes.Equal(data, []byte("[DONE]")) {
			return true, nil
		}
		if isData {
			event = append(event, data...)
			if json.Valid(event) {
				if err := f(event); err != nil {
					return false, err
				}
				event = nil
			} else {
				event = append(event, '\n')
			}
		}
		if len(bytes.TrimSpace(line)) == 0 && readErr == nil && len(event) > 0 {
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

// dataOf returns the value of a data line, without white space around it.
func dataOf(line []byte) ([]byte, bool) {
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	data = bytes.TrimSpace(data)
	return data, ok && len(data) > 0
}
