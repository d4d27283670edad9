// Package notify sends what is told of threads that come to rest: to a command, and to a
// webhook. A notice is first put into an outbox, so that no step waits for a network; a
// process of its own takes it from there, tries again where that may help, and gives up
// after a while. What was sent may come twice, by the same id, if that process is killed.
package notify

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// The two ways that a notice can go.
const (
	byCommand = "command"
	byWebhook = "webhook"
)

// longest is how long a notice can be, in bytes.
const longest = 256 << 10

// Outbox is a directory of notices that were not sent yet.
type Outbox struct{ Dir string }

// At is the outbox of a home's directory for notices.
func At(dir string) Outbox { return Outbox{Dir: filepath.Join(dir, "outbox")} }

// Put leaves a notice to be sent in each way that there is.
func (o Outbox) Put(n protocol.Notice, command, webhook bool) error {
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("put a notice into the outbox: %w", err)
	}
	if len(data) > longest { // a question of any length: its page has it all
		n.Question = nil
		if data, err = json.Marshal(n); err != nil {
			return fmt.Errorf("put a notice into the outbox: %w", err)
		}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("put a notice into the outbox: %w", err)
	}
	for way, wanted := range map[string]bool{byCommand: command, byWebhook: webhook} {
		if !wanted {
			continue
		}
		if err := durable.Replace(durable.OS(), filepath.Join(o.Dir, n.ID+"."+way), data, 0o600); err != nil {
			return fmt.Errorf("put a notice into the outbox: %w", err)
		}
	}
	return nil
}

// waits lists the names of what waits, oldest first.
func (o Outbox) waits() []string {
	entries, _ := os.ReadDir(o.Dir) // there may be none
	var names []string
	for _, entry := range entries {
		_, way, _ := strings.Cut(entry.Name(), ".")
		if way == byCommand || way == byWebhook {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Empty reports whether nothing waits.
func (o Outbox) Empty() bool { return len(o.waits()) == 0 }

func (o Outbox) read(name string) ([]byte, error) {
	return careful.ReadFile(filepath.Join(o.Dir, name), longest+4096, careful.NoFollow)
}

func (o Outbox) drop(name string) { _ = os.Remove(filepath.Join(o.Dir, name)) } // otherwise it comes twice
