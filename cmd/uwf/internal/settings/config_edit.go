package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

// configEdit lets an editor change a copy, which takes the config's place if it can be
// used. A change that came meanwhile is not lost: then nothing is taken. The copy, and
// what the editor lays beside it, hold the keys of the config: they are in the home, which
// commands of models cannot read, and go with the editor.
func (a Commands) configEdit(ctx context.Context, _ *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	lock, err := durable.TryLock(app.EditLock(dirs))
	if errors.Is(err, durable.ErrLocked) {
		return &protocol.Error{Code: protocol.CodeLocked, Message: dirs.Config() + " is open in another editor", Err: err, Hints: []string{"uwf config set <key> <value>"}}
	}
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(os.RemoveAll(dirs.Edit()), lock.RemoveAndUnlock()) }() // otherwise the next start does it
	before, err := config.ReadFile(dirs.Config())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read config: %w", err)
	}
	if err := errors.Join(os.RemoveAll(dirs.Edit()), os.MkdirAll(dirs.Edit(), 0o700)); err != nil {
		return err
	}
	file := filepath.Join(dirs.Edit(), "config.yaml")
	if err := os.WriteFile(file, before, configMode); err != nil {
		return err
	}
	if err := a.editor(ctx, file); err != nil {
		return err
	}
	after, err := config.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = a.changeConfig(ctx, func(src []byte, path string) ([]byte, []protocol.Problem, error) {
		if string(src) != string(before) {
			return nil, nil, &protocol.Error{Code: protocol.CodeLocked, Message: path + " was changed meanwhile"}
		}
		_, err := config.Parse(after, path, a.Env)
		return after, nil, err
	})
	refused := dirs.Config() + ".refused"
	if err != nil {
		if os.Rename(file, refused) == nil {
			a.Hint("what you wrote is in %s", plaintext.Word(refused))
		}
		return err
	}
	if err := os.Remove(refused); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return a.configPath(ctx, nil)
}

// editorGrace is how long an editor may take to end once it is asked to.
const editorGrace = 500 * time.Millisecond

// editor opens a file, and waits until it is closed. A signal to us ends it.
func (a Commands) editor(ctx context.Context, file string) error {
	words := strings.Fields(cmp.Or(a.Env.Get("VISUAL"), cmp.Or(a.Env.Get("EDITOR"), "vi")))
	program, err := proc.LookPath(words[0], a.Env.Dir, a.Env.Environ)
	if err != nil {
		return cmdline.NotFound("there is no editor "+words[0], "export EDITOR=<program>", "uwf config set <key> <value>")
	}
	cmd := exec.CommandContext(ctx, program, append(words[1:], file)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = editorGrace
	cmd.Env, cmd.Dir, cmd.Stdin = a.Env.Environ, a.Env.Dir, a.Env.Stdin
	cmd.Stdout, cmd.Stderr = terminal.ForChild(a.Env.Stderr), terminal.ForChild(a.Env.Stderr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", words[0], err)
	}
	return nil
}
