package agentkit

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/protocol"
)

// printer writes the lines of the contract to stdout. Safe for concurrent use.
type printer struct {
	mu   sync.Mutex
	w    io.Writer
	yaml bool // of the result line
}

// announce reports nodes that this step has put.
func (p *printer) announce(list ...protocol.TurnLine) error {
	for _, l := range list {
		line, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if err := p.write(string(line) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// result prints the last line. It begins with a line feed, so that an unfinished
// line which the agent left on stdout cannot swallow it.
func (p *printer) result(r protocol.Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if p.yaml {
		return p.write("\n" + blockYAML(line))
	}
	return p.write("\n" + string(line) + "\n")
}

func (p *printer) write(s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.w, s); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	return nil
}

// blockYAML writes a JSON object as a YAML block: one key a line, the values in
// flow style, which is JSON.
func blockYAML(object []byte) string {
	var b strings.Builder
	dec := json.NewDecoder(strings.NewReader(string(object)))
	if _, err := dec.Token(); err != nil {
		return string(object) + "\n"
	}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return string(object) + "\n" // flow style serves as well
		}
		fmt.Fprintf(&b, "%v: %s\n", key, value)
	}
	return b.String()
}
