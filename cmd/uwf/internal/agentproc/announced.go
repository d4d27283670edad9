package agentproc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/protocol"
)

// Announced returns the turns that the run in a run directory has announced so
// far, in order. A run that has not begun has announced none.
func Announced(runDir string) ([]protocol.Hash, error) {
	f, err := os.Open(filepath.Join(runDir, StdoutFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var turns []protocol.Hash
	lines := announcements{turn: func(h protocol.Hash) { turns = append(turns, h) }}
	if _, err := io.Copy(&lines, f); err != nil {
		return nil, fmt.Errorf("read announced turns: %w", err)
	}
	return turns, nil
}
