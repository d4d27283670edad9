package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
)

// configMode: the file may hold keys.
const configMode = 0o600

// changeConfig replaces config.yaml by what change makes of it, in one piece and
// under a lock: two commands at once do not lose each other's changes. A missing
// file is empty.
func (a Commands) changeConfig(
	ctx context.Context, change func(src []byte, path string) ([]byte, []protocol.Problem, error),
) ([]protocol.Problem, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	disk := durable.OS()
	if err := durable.MkdirAll(disk, dirs.Home, 0o700); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lock, err := durable.Lock(ctx, filepath.Join(dirs.Locks(), "config.lock"))
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	defer func() { _ = lock.RemoveAndUnlock() }() // the end of the process gives it back, too
	if err := durable.RemoveTemps(disk, dirs.Config()); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	src, err := config.ReadFile(dirs.Config())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read config: %w", err)
	}
	text, missing, err := change(src, dirs.Config())
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(disk, dirs.Config(), text, configMode); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return missing, nil
}
