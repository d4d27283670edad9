package cliagent

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// known is what is remembered of a session of the program: one small file each,
// in which a person finds where it belongs. Losing it costs a full prompt.
type known struct {
	Session string         `json:"session"`
	Program string         `json:"program"` // with its arguments if it is [Adapter.Commanded]
	Cwd     string         `json:"cwd"`     // without symbolic links
	Thread  string         `json:"thread,omitempty"`
	Model   string         `json:"model,omitempty"`
	Version string         `json:"version,omitempty"`
	Totals  protocol.Usage `json:"totals"` // counted so far, if the program counts on
	UsedMs  int64          `json:"usedMs"`
}

// shelf is the directory of an agent's sessions.
type shelf string

func (s shelf) path(session string) string {
	sum := fnv.New128a() // an id may hold anything, and be long
	_, _ = io.WriteString(sum, session)
	return filepath.Join(string(s), "ids", hex.EncodeToString(sum.Sum(nil))+".json")
}

// get returns what is known of a session. A file that is damaged, or of another
// session, is as good as none.
func (s shelf) get(session string) (known, bool) {
	data, err := os.ReadFile(s.path(session))
	var k known
	if err != nil || json.Unmarshal(data, &k) != nil || k.Session != session {
		return known{}, false
	}
	return k, true
}

// put remembers a session.
func (s shelf) put(k known) error { return durable.ReplaceJSON(durable.OS(), s.path(k.Session), k) }

// stale says why a session cannot be continued; "" if nothing speaks against it.
func (k known) stale(found bool, program, cwd string, anyDir bool) string {
	switch {
	case !found:
		return "nothing is known of it"
	case k.Program != program:
		return "it belongs to " + k.Program
	case k.Cwd != cwd && !anyDir:
		return "it began in " + k.Cwd
	}
	return ""
}

func (k known) used() time.Time {
	if k.UsedMs == 0 {
		return time.Time{}
	}
	return time.UnixMilli(k.UsedMs)
}

// realDir is a directory without symbolic links, as programs see it.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// newUUID returns a random UUID (version 4).
func newUUID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}
