package gitfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamltext"
)

// Pin is what an address led to when it was taken.
type Pin struct{ Commit, Content string }

// Lock is the file of a project with the pins, .uwf/lock.yaml.
type Lock struct{ Root string }

// Path is where it is.
func (l Lock) Path() string { return filepath.Join(l.Root, ".uwf", "lock.yaml") }

func (l Lock) read() ([]byte, error) {
	root, err := os.OpenRoot(l.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	return careful.ReadFileIn(root, filepath.Join(".uwf", "lock.yaml"), maxFile)
}

// all are the pins, by address.
func (l Lock) all() (map[string]Pin, error) {
	src, err := l.read()
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Pin{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pins: %w", err)
	}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		return nil, l.damaged(err)
	}
	pins := map[string]Pin{}
	if list := doc.Root.Get("workflows"); list != nil {
		for _, e := range list.Entries {
			pin := Pin{text(e.Value.Get("commit")), text(e.Value.Get("content"))}
			if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(pin.Content) {
				return nil, l.damaged(fmt.Errorf("line %d: a pin has no content: sha256:…", e.Pos.Line))
			}
			pins[e.Text] = pin
		}
	}
	return pins, nil
}

func text(n *yamldoc.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

// Find is the pin of an address; ok is false if there is none.
func (l Lock) Find(a Address) (pin Pin, ok bool, err error) {
	pins, err := l.all()
	pin, ok = pins[a.Text]
	return pin, ok, err
}

func (l Lock) damaged(err error) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: l.Path() + ": " + err.Error(), Err: err, Hints: []string{"correct it, or remove it: what is run next is pinned again"}}
}

// Set pins an address.
func (l Lock) Set(a Address, f File) error {
	pins, err := l.all()
	if err != nil {
		return err
	}
	pins[a.Text] = Pin{f.Commit, f.Content}
	list := yamltext.Map{}
	for _, address := range slices.Sorted(maps.Keys(pins)) {
		pin := pins[address]
		list = append(list, yamltext.Entry{Key: address, Value: yamltext.Map{{Key: "commit", Value: pin.Commit}, {Key: "content", Value: pin.Content}}})
	}
	src, err := yamltext.Marshal(yamltext.Map{{Key: "workflows", Value: list}})
	if err != nil {
		return err
	}
	src = append([]byte("# What workflows from elsewhere were when they were taken: uwf writes it.\n"), src...)
	dir := filepath.Dir(l.Path())
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	return durable.WriteFile(durable.OS(), l.Path(), src, 0o644)
}
