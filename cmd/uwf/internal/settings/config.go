// Package settings implements the commands config, setup and doctor.
package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

// Commands provides the commands of this package.
type Commands struct{ *app.App }

// Config returns the command uwf config.
func (a Commands) Config() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "config", Usage: "show and change the configuration",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "list", Aliases: []string{"ls"}, Usage: "print the config, with secrets masked",
			}, a.configList),
			a.Leaf(ucli.Command{
				Name: "get", ArgsUsage: "<key>", Usage: "print one value, with secrets masked",
			}, a.configGet),
			a.Leaf(ucli.Command{
				Name: "set", ArgsUsage: "<key> <value>", Usage: "set one value",
			}, a.configSet),
			a.Leaf(ucli.Command{
				Name: "unset", ArgsUsage: "<key>", Usage: "remove one value",
			}, a.configUnset),
			a.WithEngine(ucli.Command{
				Name: "show", Usage: "print the effective config of this directory",
				Flags: []ucli.Flag{&ucli.BoolFlag{Name: "origin", Usage: "show which file each value comes from"}},
			}, a.configShow),
			a.Leaf(ucli.Command{
				Name: "edit", Usage: "edit config.yaml in $VISUAL or $EDITOR",
			}, a.configEdit),
			a.Leaf(ucli.Command{
				Name: "path", Usage: "print the path of config.yaml",
			}, a.configPath),
		},
	})
}

// rawConfig reads config.yaml verbatim. It reports mistakes but does not fail, so that the config can be
// inspected.
func (a Commands) rawConfig(ctx context.Context) (any, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	src, err := config.ReadFile(dirs.Config())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmdline.NotFound("no config yet: "+dirs.Config()+" does not exist",
			"to create it: uwf setup")
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	raw, err := config.Raw(src, dirs.Config())
	if err != nil {
		return nil, err
	}
	if _, err := config.Of(dirs).Load(ctx, a.Env); err != nil {
		a.Warnf("invalid config: %v", err)
	}
	for _, p := range config.Warnings(src, dirs.Config(), a.Env) {
		a.Warnf("%s", plaintext.Line(p.Message))
	}
	return raw, nil
}

func (a Commands) configList(ctx context.Context, _ *ucli.Context) error {
	raw, err := a.rawConfig(ctx)
	if err != nil {
		return err
	}
	return a.Print(raw, func(w *term.Page) { flatText(w, "", raw) })
}

// configValue is the result of config get and set.
type configValue struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func (a Commands) configGet(ctx context.Context, c *ucli.Context) error {
	key, err := config.ParseKey(c.Args().First())
	if err != nil {
		return err
	}
	raw, err := a.rawConfig(ctx)
	if err != nil {
		return err
	}
	value, ok := key.Lookup(raw)
	if !ok {
		return cmdline.NotFound("key not found: "+key.String(), nearKeys(key, raw)...)
	}
	return a.Print(configValue{Key: key.String(), Value: value}, func(w *term.Page) {
		if _, isMap := value.(map[string]any); isMap {
			flatText(w, key.String(), value)
			return
		}
		w.Printf("%s\n", plaintext.Line(scalarText(value)))
	})
}

// nearKeys returns hints with similar keys that are set.
func nearKeys(key config.Key, raw any) []string {
	var known []string
	flatten("", raw, func(k string, _ any) { known = append(known, k) })
	return append(cmdline.DidYouMean("", key.String(), known), "uwf config list")
}

func (a Commands) configSet(ctx context.Context, c *ucli.Context) error {
	key, err := config.ParseKey(c.Args().Get(0))
	if err != nil {
		return err
	}
	text, err := a.OrStdin(c.Args().Get(1))
	if err != nil {
		return err
	}
	value, err := key.Value(text)
	if err != nil {
		return err
	}
	missing, err := a.changeConfig(ctx, func(src []byte, path string) ([]byte, []protocol.Problem, error) {
		return config.Set(src, path, key, value, a.Env)
	})
	if err != nil {
		return err
	}
	for _, p := range missing {
		a.Messagef("uwf: the config is incomplete: %s", p.Message)
		a.Hint("uwf config set %s <value>", plaintext.Word(strings.TrimSuffix(p.Message, " is missing")))
	}
	if s, ok := value.(string); ok && key.Secret() {
		value = config.MaskKey(s)
	}
	return a.Printf(configValue{Key: key.String(), Value: value}, "%s = %s\n", key, plaintext.Line(scalarText(value)))
}

// flatText prints a config as "key = value" lines.
func flatText(w *term.Page, prefix string, value any) {
	flatten(prefix, value, func(key string, value any) {
		w.Printf("%s = %s\n", plaintext.Line(key), plaintext.Line(scalarText(value)))
	})
}

// flatten calls f for each value that is not a mapping, sorted by key.
func flatten(prefix string, value any, f func(key string, value any)) {
	m, ok := value.(map[string]any)
	if !ok {
		f(prefix, value)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at := key
		if strings.ContainsAny(key, ". ") && prefix != "modelOverrides" {
			at = fmt.Sprintf("%q", key)
		}
		if prefix != "" {
			at = prefix + "." + at
		}
		flatten(at, m[key], f)
	}
}

// scalarText returns a value in the form to type.
func scalarText(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil { // cannot happen: it came from YAML
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func (a Commands) configUnset(ctx context.Context, c *ucli.Context) error {
	key, err := config.ParseKey(c.Args().First())
	if err != nil {
		return err
	}
	_, err = a.changeConfig(ctx, func(src []byte, path string) ([]byte, []protocol.Problem, error) {
		text, err := config.Unset(src, path, key, a.Env)
		return text, nil, err
	})
	if err != nil {
		return err
	}
	return a.Printf(configValue{Key: key.String()}, "removed %s\n", key)
}

// configOrigin is one value of config show --origin.
type configOrigin struct {
	configValue
	Origin string `json:"origin"` // the file
}

func (a Commands) configShow(ctx context.Context, c *ucli.Context, e *engine.Engine) error {
	inForce, err := e.Reader.Config(ctx)
	if err != nil {
		return err
	}
	shown, err := config.Shown(inForce)
	if err != nil {
		return err
	}
	if !c.Bool("origin") {
		return a.Print(shown, func(w *term.Page) { flatText(w, "", shown) })
	}
	own, err := e.Reader.Files.Load(ctx, e.Reader.Env)
	if err != nil {
		return err
	}
	users, err := config.Shown(own)
	if err != nil {
		return err
	}
	userValues := map[string]any{}
	flatten("", users, func(key string, value any) { userValues[key] = value })
	list := []configOrigin{}
	flatten("", shown, func(key string, value any) {
		from := e.Reader.Dirs.Config()
		if was, known := userValues[key]; !known || !reflect.DeepEqual(was, value) {
			from = e.Project
		}
		list = append(list, configOrigin{configValue{key, value}, from})
	})
	return a.Print(list, func(w *term.Page) {
		for _, v := range list {
			w.Printf("%s = %s  (%s)\n", plaintext.Line(v.Key), plaintext.Line(scalarText(v.Value)), plaintext.Line(a.Workflows().Shown(v.Origin)))
		}
	})
}

func (a Commands) configPath(context.Context, *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	return a.Printf(map[string]string{"path": dirs.Config()}, "%s\n", plaintext.Line(dirs.Config()))
}

// configMode is restrictive because the file may contain keys.
const configMode = 0o600

// changeConfig atomically replaces config.yaml with the result of change, under a lock, so that concurrent
// commands don't lose changes. A missing file counts as empty.
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
	defer func() { _ = lock.RemoveAndUnlock() }() // the lock also ends with the process
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

// configEdit edits a copy of the config, which replaces it if valid. If the config was changed in the
// meantime, nothing is replaced. The copy and the editor's files next to it contain keys, so they are in the
// home, which models' commands cannot read, and are removed afterwards.
func (a Commands) configEdit(ctx context.Context, _ *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	lock, err := durable.TryLock(filepath.Join(dirs.Locks(), "edit.lock"))
	if errors.Is(err, durable.ErrLocked) {
		return &protocol.Error{Code: protocol.CodeLocked, Message: dirs.Config() + " is open in another editor", Err: err, Hints: []string{"uwf config set <key> <value>"}}
	}
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(os.RemoveAll(dirs.Edit()), lock.RemoveAndUnlock()) }() // otherwise the next edit removes them
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
			return nil, nil, &protocol.Error{Code: protocol.CodeLocked, Message: path + " was changed while you edited it"}
		}
		_, err := config.Parse(after, path, a.Env)
		return after, nil, err
	})
	refused := dirs.Config() + ".refused"
	if err != nil {
		if os.Rename(file, refused) == nil {
			a.Hint("your version is in %s", plaintext.Word(refused))
		}
		return err
	}
	if err := os.Remove(refused); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return a.configPath(ctx, nil)
}

// editorGrace bounds the time that an editor may take to exit when asked to.
const editorGrace = 500 * time.Millisecond

// editor opens a file and waits until it is closed. A signal to uwf ends it.
func (a Commands) editor(ctx context.Context, file string) error {
	words := strings.Fields(cmp.Or(strings.TrimSpace(a.Env.Get("VISUAL")), strings.TrimSpace(a.Env.Get("EDITOR")), "vi"))
	program, err := proc.LookPath(words[0], a.Env.Dir, a.Env.Environ)
	if err != nil {
		return cmdline.NotFound("editor not found: "+words[0], "export EDITOR=<program>", "uwf config set <key> <value>")
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
