package runfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

const (
	checkFormat = `,"check":"%08x"}`
	checkLen    = len(`,"check":"00000000"}`)
)

// Checked is an object as one line, which ends in a sum of what is before it: a damaged
// one must not pass for another.
func Checked(object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	data = data[:len(data)-1]
	return fmt.Appendf(data, checkFormat+"\n", crc32.ChecksumIEEE(data)), nil
}

// ReadChecked reads such a line; false: it is damaged. One of the versions before there
// was a sum is believed if it says nothing that those did not.
func ReadChecked(line []byte, object any) bool {
	line = bytes.TrimSuffix(line, []byte("\n"))
	end := max(0, len(line)-checkLen)
	if string(line[end:]) == fmt.Sprintf(checkFormat, crc32.ChecksumIEEE(line[:end])) {
		return json.Unmarshal(line, object) == nil
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(object) == nil && !d.More()
}
