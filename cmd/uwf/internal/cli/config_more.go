package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

func (a *app) configUnset(ctx context.Context, c *ucli.Context) error {
	key, err := config.ParseKey(c.Args().First())
	if err != nil {
		return err
	}
	_, err = a.changeConfig(ctx, func(src []byte, path string) ([]byte, []protocol.Problem, error) {
		text, err := config.Unset(src, path, key, a.env)
		return text, nil, err
	})
	if err != nil {
		return err
	}
	return a.print(configValue{Key: key.String()}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s is unset\n", key)
		return err
	})
}

// configOrigin is one value of config show --origin.
type configOrigin struct {
	configValue
	Origin string `json:"origin"` // the file
}

func (a *app) configShow(ctx context.Context, c *ucli.Context) error {
	e, err := a.engine(ctx, nil)
	if err != nil {
		return err
	}
	inForce, err := e.Config(ctx)
	if err != nil {
		return err
	}
	shown, err := config.Shown(inForce)
	if err != nil {
		return err
	}
	if !c.Bool("origin") {
		return a.print(shown, func(w io.Writer) error { return flatText(w, "", shown) })
	}
	own, err := config.Load(ctx, e.Dirs.Config(), e.Env)
	if err != nil {
		return err
	}
	users, err := config.Shown(own)
	if err != nil {
		return err
	}
	said := map[string]any{}
	flatten("", users, func(key string, value any) { said[key] = value })
	list := []configOrigin{}
	flatten("", shown, func(key string, value any) {
		from := e.Dirs.Config()
		if was, known := said[key]; !known || !reflect.DeepEqual(was, value) {
			from = e.Project
		}
		list = append(list, configOrigin{configValue{key, value}, from})
	})
	return a.print(list, func(w io.Writer) error {
		for _, v := range list {
			if _, err := fmt.Fprintf(w, "%s = %s  (%s)\n", plaintext.Line(v.Key), plaintext.Line(scalarText(v.Value)), plaintext.Line(a.workflows().Shown(v.Origin))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) configPath(context.Context, *ucli.Context) error {
	dirs, err := a.dirs()
	if err != nil {
		return err
	}
	return a.print(map[string]string{"path": dirs.Config()}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, plaintext.Line(dirs.Config()))
		return err
	})
}

// configEdit lets an editor change a copy, which takes the config's place if it can be
// used. A change that came meanwhile is not lost: then nothing is taken.
func (a *app) configEdit(ctx context.Context, _ *ucli.Context) error {
	dirs, err := a.dirs()
	if err != nil {
		return err
	}
	before, err := config.ReadFile(dirs.Config())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read config: %w", err)
	}
	dir, err := os.MkdirTemp("", "uwf-config-")
	if err != nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			_ = os.RemoveAll(dir) // a directory of ours that nobody needs
		}
	}()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, before, configMode); err != nil {
		return err
	}
	if err := a.editor(file); err != nil {
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
		_, err := config.Parse(after, path, a.env)
		return after, nil, err
	})
	if err != nil {
		kept = true
		a.hint("what you wrote is in %s", plaintext.Word(file))
		return err
	}
	return a.configPath(ctx, nil)
}

// editor opens a file, and waits until it is closed.
func (a *app) editor(file string) error {
	words := strings.Fields(orElse(a.env.Get("VISUAL"), orElse(a.env.Get("EDITOR"), "vi")))
	program, err := proc.LookPath(words[0], a.env.Dir, a.env.Environ)
	if err != nil {
		return notFound("there is no editor "+words[0], "export EDITOR=<program>", "uwf config set <key> <value>")
	}
	cmd := exec.Command(program, append(words[1:], file)...)
	cmd.Env, cmd.Dir, cmd.Stdin = a.env.Environ, a.env.Dir, a.env.Stdin
	cmd.Stdout, cmd.Stderr = terminal.ForChild(a.env.Stderr), terminal.ForChild(a.env.Stderr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", words[0], err)
	}
	return nil
}
