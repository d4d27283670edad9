package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/threadid"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// The remotes that a home knows are the lines of <home>/remotes.yaml. No project and no
// workflow adds to them.

// Remote is what a home knows of one.
type Remote struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Trust: the commands of threads that come from there may run, as those of one's own
	// threads may.
	Trust bool `json:"trust,omitempty"`
}

// maxRemotes bounds the file, in bytes.
const maxRemotes = 1 << 20

// RemoteName is what a remote may be called.
var remoteName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckRemoteName refuses what cannot be the name of a remote.
func CheckRemoteName(name string) error {
	if !remoteName().MatchString(name) {
		return cmdline.UsageError(fmt.Sprintf("%q cannot be the name of a remote: letters, digits, dots, _ and -, at most 64", name), "uwf remote add team ADDRESS")
	}
	return nil
}

func (a *App) remotesFile() (string, error) {
	dirs, err := a.Dirs()
	return dirs.Remotes(), err
}

// Remotes are those that the home knows, sorted.
func (a *App) Remotes() ([]Remote, error) {
	path, err := a.remotesFile()
	if err != nil {
		return nil, err
	}
	data, err := safeopen.ReadFile(path, maxRemotes, safeopen.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := parseRemotes(data)
	if err != nil {
		return nil, cmdline.Invalid(fmt.Sprintf("%s cannot be read: %v", path, err), "correct it, or remove it and add the remotes again")
	}
	return all, nil
}

func parseRemotes(data []byte) ([]Remote, error) {
	if strings.TrimSpace(string(data)) == "" {
		return nil, nil
	}
	doc, err := yamldoc.Parse(data, yamldoc.Bounds{})
	if err != nil {
		return nil, err
	}
	entries, ok := doc.Root.Value().(map[string]any)
	if !ok {
		return nil, errors.New("it is not a mapping from names to remotes")
	}
	var all []Remote
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry, _ := entries[name].(map[string]any)
		address, _ := entry["address"].(string)
		trust, _ := entry["trust"].(bool)
		if !remoteName().MatchString(name) || address == "" {
			return nil, fmt.Errorf("the entry %q is none of a remote", name)
		}
		all = append(all, Remote{Name: name, Address: address, Trust: trust})
	}
	return all, nil
}

// ChangeRemotes changes the list, alone.
func (a *App) ChangeRemotes(ctx context.Context, change func([]Remote) ([]Remote, error)) error {
	path, err := a.remotesFile()
	if err != nil {
		return err
	}
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	for _, dir := range []string{dirs.Home, dirs.Locks()} {
		if err := durable.MkdirAll(durable.OS(), dir, 0o700); err != nil {
			return err
		}
	}
	held, err := durable.Lock(ctx, filepath.Join(dirs.Locks(), "remotes.lock"))
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	all, err := a.Remotes()
	if err != nil {
		return err
	}
	if all, err = change(all); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b Remote) int { return strings.Compare(a.Name, b.Name) })
	var text []byte
	for _, r := range all {
		entry := map[string]any{"address": r.Address}
		if r.Trust {
			entry["trust"] = true
		}
		line, err := json.Marshal(entry) // which is YAML
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "%s: %s\n", r.Name, line)
	}
	return durable.WriteFile(durable.OS(), path, text, 0o600)
}

// FindRemote is the remote that a person means: by its name, or by its address; "": the
// only one.
func (a *App) FindRemote(name string) (Remote, error) {
	all, err := a.Remotes()
	if err != nil {
		return Remote{}, err
	}
	var names []string
	for _, r := range all {
		if names = append(names, r.Name); r.Name == name {
			return r, nil
		}
	}
	switch {
	case name == "" && len(all) == 1:
		return all[0], nil
	case name == "" && len(all) == 0:
		return Remote{}, cmdline.NotFound("this home knows no remote", "uwf remote add team ADDRESS")
	case name == "":
		return Remote{}, cmdline.UsageError("which remote? there are "+strings.Join(names, ", "), "name it last")
	case remote.IsAddress(name):
		at, err := remote.ParseAddress(name, a.Env.Dir)
		return Remote{Name: at.Text, Address: at.Text}, err
	}
	if _, err := remote.ParseAddress(name, a.Env.Dir); err != nil && strings.Contains(name, "@") {
		return Remote{}, err // it may hold a password, which is not repeated
	}
	hints := append(cmdline.DidYouMean("", name, names), "uwf remote list", "uwf remote add "+plaintext.Word(name)+" ADDRESS")
	return Remote{}, cmdline.NotFound(fmt.Sprintf("there is no remote %q", name), hints...)
}

// Link connects the home with a remote, until done is called.
func (a *App) Link(ctx context.Context, name string, show func(engine.Event)) (l *remotes.Link, done func(), err error) {
	found, err := a.FindRemote(name)
	if err != nil {
		return nil, nil, err
	}
	at, err := remote.ParseAddress(found.Address, a.Env.Dir)
	if err != nil {
		return nil, nil, err
	}
	l = &remotes.Link{Name: found.Name, Trusted: found.Trust, Near: a.Env.Dir, Holder: a.holder(), Warn: func(text string) { a.Say("uwf: warning: %s", plaintext.Line(text)) }}
	if l.Engine, err = a.Engine(ctx, show); err != nil {
		return nil, nil, err
	}
	if l.Heads, err = a.Index(); err != nil {
		return nil, nil, err
	}
	if l.Store = a.FS; l.Store == nil {
		return nil, nil, cmdline.Invalid("a bundle has no remotes")
	}
	environ := l.Engine.Reader.Env.Environ
	if found.Trust {
		environ = append(slices.Clone(environ), remote.TrustVariable+"=1")
	}
	client, err := wire.Dial(ctx, wire.Helper{Address: at, Environ: environ, Dir: a.Env.Dir, Exe: a.Env.Exe},
		wire.Options{
			Hash: l.Store.Algorithm(), Program: "uwf " + cmdline.Version(),
			Stalled: func() { a.Say("waiting for %s…", hostOf(at)) },
		})
	if err != nil {
		return nil, nil, dialError(found.Name, err)
	}
	l.Remote = client
	return l, func() { _ = client.Close() }, nil
}

// hostOf returns the name of the far end that a person recognises.
func hostOf(at remote.Address) string {
	if far, err := at.SSH(); err == nil {
		return plaintext.Line(far.Host)
	}
	return plaintext.Line(at.Text)
}

func dialError(name string, err error) error {
	var none *wire.NoHelperError
	switch {
	case errors.As(err, &none):
		return &protocol.Error{
			Code: protocol.CodeNotFound, Message: "remote " + name + ": " + err.Error(), Err: err,
			Hints: []string{"install " + none.Program + " beside uwf, or on PATH"}, Machine: true,
		}
	case errors.As(err, new(*protocol.Error)):
		return err
	}
	return fmt.Errorf("remote %s: %w", name, err)
}

// holder is who takes leases.
func (a *App) holder() string {
	name, _ := os.Hostname()
	return remotes.HolderName(cmp.Or(host.User(a.Env), "somebody"), name, os.Getpid())
}

// ThreadAt finds the thread that a person means at a remote: one that is here, or a full
// id, or the unique beginning or end of an id there.
func (a *App) ThreadAt(ctx context.Context, l *remotes.Link, arg string) (string, error) {
	if id, err := threadid.Parse(arg); err == nil {
		return id, nil
	}
	id, err := a.Thread(ctx, arg)
	if err == nil {
		return id, nil
	}
	part, ok := names.Part(arg)
	if !ok {
		return "", err
	}
	ids, listErr := l.Like(ctx, part)
	switch {
	case listErr != nil:
		return "", listErr
	case len(ids) == 0:
		return "", cmdline.NotFound("thread not found, neither here nor at "+plaintext.Line(l.Name)+": "+arg, "uwf remote list "+plaintext.Word(l.Name)+" --all")
	case len(ids) > 1:
		return "", suggest.Ambiguous("thread", arg, ids)
	}
	return ids[0], nil
}

// ThreadIDs are all threads, active and ended.
func (a *App) ThreadIDs(ctx context.Context) ([]string, error) {
	r, err := a.names()
	if err != nil {
		return nil, err
	}
	return r.Threads(ctx)
}
