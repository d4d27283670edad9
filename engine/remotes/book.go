package remotes

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

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Book is a home's list of remotes, stored in <home>/remotes.yaml. Projects and workflows cannot add to it.
// Errors of its methods are *protocol.Error, or errors of the file system.
type Book struct {
	Dirs home.Dirs
	Dir  string // base directory of relative addresses
}

// Known is a remote of a [Book].
type Known struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Trust lets commands of threads from this remote run as if the threads were started here.
	Trust bool `json:"trust,omitempty"`
}

// maxRemotes is the maximum size of the file in bytes.
const maxRemotes = 1 << 20

var remoteName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName returns an error if name is not a valid name of a remote.
func CheckName(name string) error {
	if !remoteName().MatchString(name) {
		return fault.New(protocol.CodeUsage, "invalid remote name %q: want at most 64 letters, digits, '.', '_' "+
			"and '-'",
			plaintext.Short(name, 200)).Because("no-remote-name")
	}
	return nil
}

// All returns the remotes, sorted by name.
func (b Book) All() ([]Known, error) {
	path := b.Dirs.Remotes()
	data, err := safeopen.ReadFile(path, maxRemotes, safeopen.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := parse(data)
	if err != nil {
		return nil, fault.New(protocol.CodeInvalid, "%s cannot be read: %v", path, err).Because("remotes-unreadable")
	}
	return all, nil
}

func parse(data []byte) ([]Known, error) {
	if strings.TrimSpace(string(data)) == "" {
		return nil, nil
	}
	doc, err := yamldoc.Parse(data, yamldoc.Bounds{})
	if err != nil {
		return nil, err
	}
	entries, ok := doc.Root.Value().(map[string]any)
	if !ok {
		return nil, errors.New("not a mapping from names to remotes")
	}
	var all []Known
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry, _ := entries[name].(map[string]any)
		address, _ := entry["address"].(string)
		trust, _ := entry["trust"].(bool)
		if !remoteName().MatchString(name) || address == "" {
			return nil, fmt.Errorf("invalid entry %q", name)
		}
		all = append(all, Known{Name: name, Address: address, Trust: trust})
	}
	return all, nil
}

// Change changes the list under a lock.
func (b Book) Change(ctx context.Context, change func([]Known) ([]Known, error)) error {
	for _, dir := range []string{b.Dirs.Home, b.Dirs.Locks()} {
		if err := durable.MkdirAll(durable.OS(), dir, 0o700); err != nil {
			return err
		}
	}
	held, err := durable.Lock(ctx, filepath.Join(b.Dirs.Locks(), "remotes.lock"))
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	all, err := b.All()
	if err != nil {
		return err
	}
	if all, err = change(all); err != nil {
		return err
	}
	sorting.Func(all, func(a, b Known) int { return strings.Compare(a.Name, b.Name) })
	var text []byte
	for _, r := range all {
		entry := map[string]any{"address": r.Address}
		if r.Trust {
			entry["trust"] = true
		}
		line, err := json.Marshal(entry) // JSON is valid YAML
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "%s: %s\n", r.Name, line)
	}
	return durable.WriteFile(durable.OS(), b.Dirs.Remotes(), text, 0o600)
}

// Find returns the remote with a name or an address. If name is "", it returns the only remote.
func (b Book) Find(name string) (Known, error) {
	all, err := b.All()
	if err != nil {
		return Known{}, err
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
		return Known{}, fault.New(protocol.CodeNotFound, "no remotes configured").Because("no-remote-yet")
	case name == "":
		return Known{}, fault.New(protocol.CodeUsage, "several remotes exist: %s", strings.Join(names, ", ")).
			Because("which-remote")
	case remote.IsAddress(name):
		at, err := remote.ParseAddress(name, b.Dir)
		return Known{Name: at.Text, Address: at.Text}, err
	}
	if _, err := remote.ParseAddress(name, b.Dir); err != nil && strings.Contains(name, "@") {
		return Known{}, err // the address may contain a password, so the error must not repeat it
	}
	near := append(suggest.Nearest(name, names, 1), "")
	return Known{}, fault.New(protocol.CodeNotFound, "no remote named %q", plaintext.Short(name, 200)).
		Because("no-such-remote", "name", name, "near", near[0])
}

// OpenOptions are the options of [Open]. The zero value is valid.
type OpenOptions struct {
	Program string                // name of this program, reported to the remote
	Stalled func(far string)      // called if the remote is slow, if not nil
	Warn    func(string)          // called with warnings
	Suggest func(protocol.Reason) // see [Link]
}

// Open connects an engine's home to one of its remotes until done is called. The home must use files.
func Open(ctx context.Context, e *engine.Engine, process env.Env, name string,
	o OpenOptions) (l *Link, done func(), err error) {
	found, err := Book{e.Reader.Dirs, process.Dir}.Find(name)
	if err != nil {
		return nil, nil, err
	}
	at, err := remote.ParseAddress(found.Address, process.Dir)
	if err != nil {
		return nil, nil, err
	}
	machine, _ := os.Hostname()
	l = &Link{
		Name: found.Name, Address: at.Text, Trusted: found.Trust, Near: process.Dir, Warn: o.Warn, Suggest: o.Suggest, Engine: e,
		Holder: holderName(cmp.Or(process.User(), "somebody"), machine, os.Getpid()),
	}
	l.Store, _ = e.Reader.Store.(*fsstore.Store)
	l.Heads, _ = e.Reader.Heads.(*fileheads.Heads)
	if l.Store == nil || l.Heads == nil {
		return nil, nil, fault.New(protocol.CodeInvalid, "this home cannot have remotes: it is not stored in files")
	}
	environ := e.Reader.Env.Environ
	if found.Trust {
		environ = append(slices.Clone(environ), remote.TrustVariable+"=1")
	}
	w := wire.Options{Hash: l.Store.Algorithm(), Program: o.Program}
	if o.Stalled != nil {
		w.Stalled = func() { o.Stalled(hostOf(at)) }
	}
	client, err := wire.Dial(ctx, wire.Helper{Address: at, Environ: environ, Dir: process.Dir, Exe: process.Exe}, w)
	if err != nil {
		return nil, nil, dialError(found.Name, err)
	}
	l.Remote = client
	return l, func() { _ = client.Close() }, nil
}

// hostOf returns a recognizable name of the remote's host.
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
		missing := fault.New(protocol.CodeNotFound, "remote %s: %v", name, err).
			Because("helper-missing", "program", none.Program)
		missing.Err, missing.Machine = err, true
		return missing
	case errors.As(err, new(*protocol.Error)):
		return err
	}
	return fmt.Errorf("remote %s: %w", name, err)
}
