package runfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// MailboxDir holds what people tell a thread, a file each. A file that an agent was told
// of has the head in its name that the step follows which it was told in.
const MailboxDir = "mailbox"

// Bounds of a mailbox.
const (
	MaxLetter  = 64 << 10      // bytes of a text
	maxFile    = 7 * MaxLetter // a byte is up to six in JSON
	maxLetters = 100
	unread     = ".json"
	told       = ".told"
)

// ErrFull means that nobody reads what people say.
var ErrFull = errors.New("the mailbox is full")

// Letter is what somebody has told a thread.
type Letter struct {
	Text string `json:"text"`
	AtMs int64  `json:"atMs"`

	name string
}

func (d Dir) mail(name string) string { return filepath.Join(string(d), MailboxDir, name) }

// Post puts a letter into the mailbox, durably; key tells letters of one moment apart.
func (d Dir) Post(fsys durable.FS, l Letter, key string) (name string, err error) {
	if len(d.names()) >= maxLetters {
		return "", ErrFull
	}
	data, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	if err := fsys.MkdirAll(d.mail(""), 0o700); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%015d-%s%s", l.AtMs, key, unread)
	return name, durable.WriteFile(fsys, d.mail(name), data, 0o600)
}

// Withdraw takes a letter back; false: it was read.
func (d Dir) Withdraw(name string) bool { return os.Remove(d.mail(name)) == nil }

// names are the files of the mailbox, oldest first. A link in its place is none.
func (d Dir) names() []string {
	if info, err := os.Lstat(d.mail("")); d == "" || err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(d.mail(""))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries[:min(len(entries), 10*maxLetters)] {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// Unread are the letters that no agent was told of, oldest first. A file that is not one
// stays where it is.
func (d Dir) Unread() []Letter {
	var letters []Letter
	for _, name := range d.names() {
		if !strings.HasSuffix(name, unread) {
			continue
		}
		data, err := careful.ReadFile(d.mail(name), maxFile, careful.NoFollow)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		l := Letter{name: name}
		if err == nil && json.Unmarshal(data, &l) == nil && l.Text != "" {
			letters = append(letters, l)
		}
	}
	return letters
}

// Told notes that an agent was told of a letter, in the step that follows head.
func (d Dir) Told(l Letter, head protocol.Hash) error {
	return os.Rename(d.mail(l.name), d.mail(strings.TrimSuffix(l.name, unread)+"."+string(head)+told))
}

// SettleMail judges what agents were told of, before the next one begins with the step
// that follows head: in a step that was made, it is done with. A try of this very step
// that failed knows it only if its conversation goes on; else it is to be told again.
func (d Dir) SettleMail(head protocol.Hash, goesOn bool) error {
	var errs []error
	for _, name := range d.names() {
		rest, was := strings.CutSuffix(name, told)
		if !was {
			continue
		}
		key, now := strings.CutSuffix(rest, "."+string(head))
		var err error
		switch {
		case !now:
			err = os.Remove(d.mail(name))
		case !goesOn:
			err = os.Rename(d.mail(name), d.mail(key+unread))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
