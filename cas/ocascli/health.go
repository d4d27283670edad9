package ocascli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

func (c *CLI) fsckCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "fsck", Usage: "check the whole store",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "repair", Usage: "rebuild damaged data, or move it to quarantine"},
			&ucli.StringFlag{Name: "evict", Usage: "`HASH` only move this node to quarantine"},
		},
	}, c.fsck)
}

func (c *CLI) fsck(ctx context.Context, cc *ucli.Context) error {
	repair := cc.Bool("repair")
	s, err := c.existing(ctx)
	if err != nil {
		return err
	}
	if cc.IsSet("evict") {
		if repair {
			return cmdline.UsageError("--evict and --repair exclude each other", c.Program+" fsck --evict <hash>")
		}
		return c.evict(ctx, s, cc.String("evict"))
	}
	home, err := c.indexHome()
	if err != nil {
		return err
	}
	report, err := fsck.Run(ctx, s, fsck.Options{Home: home, Repair: repair, Program: c.Program, Now: c.Env.Now})
	if err != nil {
		return err
	}
	if c.Files != nil && home != "" {
		states, err := c.Files.CheckFiles(ctx, func(f fsck.Fault) { report.Faults = append(report.Faults, f) })
		if report.Files = states; err != nil {
			return err
		}
	}
	if !report.Sound() {
		c.Status = protocol.CodeCorrupt
	}
	if report.Faults == nil {
		report.Faults = []fsck.Fault{}
	}
	return c.print(report, func(w *bytes.Buffer) { printFsck(w, report) })
}

// indexHome returns the home directory, "" if it doesn't exist: a store can be used without one.
func (c *CLI) indexHome() (string, error) {
	dirs, err := c.Dirs()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dirs.Home); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return dirs.Home, nil
}

func printFsck(w io.Writer, r fsck.Report) {
	for _, f := range r.Faults {
		what := string(f.Kind)
		if f.Hash != "" {
			what += " " + string(f.Hash)
		}
		lines := []string{fmt.Sprintf("%s: %s", what, plaintext.Line(f.Message)), "  " + plaintext.Line(f.Path)}
		if f.Dependents > 0 {
			lines = append(lines, "  needed by "+dependents(f))
		}
		if f.Restore != "" {
			lines = append(lines, "  to restore it: "+plaintext.Line(f.Restore))
		}
		if f.Repaired != "" {
			lines = append(lines, "  repaired: "+plaintext.Line(f.Repaired))
		}
		fmt.Fprintln(w, strings.Join(lines, "\n"))
	}
	for _, t := range r.Tombstones {
		PrintTombstone(w, t.Hash, t.Reason, t.At, t.Sealed, t.Threads...)
		if t.Foreign {
			fmt.Fprintln(w, "  it was not made here: an import brought it, and the content takes its place when it is put")
		}
	}
	remain := r.Unlisted
	for _, f := range r.Faults {
		if f.Remains {
			remain++
		}
	}
	verdict := "nothing is wrong"
	if remain > 0 {
		verdict = render.Count(remain, "fault")
	}
	files := ""
	if r.Files > 0 {
		files = ", " + render.Count(r.Files, "state") + " of files"
	}
	fmt.Fprintf(w, "%s, %s, %s%s: %s\n", render.Count(r.Nodes, "node"), render.Count(r.Threads, "thread"),
		render.Count(r.Workflows, "registered workflow"), files, verdict)
}

func dependents(f fsck.Fault) string {
	var parts []string
	if len(f.Threads) > 0 {
		parts = append(parts, "thread "+strings.Join(f.Threads, ", "))
	}
	if len(f.Workflows) > 0 {
		parts = append(parts, "workflow "+strings.Join(f.Workflows, ", "))
	}
	if more := f.Dependents - len(f.Threads) - len(f.Workflows); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "; ")
}

func (c *CLI) gcCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "gc", Usage: "delete nodes that nothing uses",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only print what would be deleted"},
			&ucli.StringFlag{Name: "grace", Usage: "`DURATION` keep nodes that are newer than this (default 1h)"},
			&ucli.StringSliceFlag{Name: "roots", Usage: "`DIR` home whose threads to keep (default all that use the store)"},
			&ucli.StringSliceFlag{Name: "forget-home", Usage: "`DIR` home that was deleted, so that nothing is kept for its threads"},
			&ucli.BoolFlag{Name: "auto", Usage: "only compress, and only if it pays and no other gc runs; uwf does this in the background"},
			&ucli.BoolFlag{Name: "damaged", Usage: "continue even if nodes or threads in use are missing or damaged"},
		},
	}, c.gc)
}

func (c *CLI) gc(ctx context.Context, cc *ucli.Context) error {
	grace := gc.DefaultGrace
	if text := cc.String("grace"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return cmdline.UsageError(fmt.Sprintf("invalid --grace %q: want a duration such as 30m or 0s", text), "--grace 1h")
		}
		grace = d
	}
	s, err := c.existing(ctx)
	if err != nil {
		return err
	}
	if cc.Bool("auto") {
		if !s.CompactionDue(c.Env.Now()) {
			return nil
		}
		if err := s.BeginCompaction(); err != nil {
			return err
		}
		return gc.Pack(ctx, s, c.Env.Now())
	}
	for _, home := range cc.StringSlice("forget-home") {
		if err := c.forgetHome(ctx, s, c.Env.Path(home)); err != nil {
			return err
		}
	}
	homes, err := c.homes(s, cc.StringSlice("roots"))
	if err != nil {
		return err
	}
	report, err := gc.Run(ctx, s, gc.Options{
		Homes: homes, Grace: grace, DryRun: cc.Bool("dry-run"), Damaged: cc.Bool("damaged"), Now: c.Env.Now,
	})
	if err != nil {
		return err
	}
	answer := collected{Report: report}
	line := ""
	if c.Files != nil {
		if answer.Files, line, err = c.Files.CollectFiles(ctx, homes, report.DryRun, func(run func() error) error { return s.Exclusively(ctx, run) }); err != nil {
			return err
		}
	}
	return c.print(answer, func(w *bytes.Buffer) {
		verb := "removed"
		if report.DryRun {
			verb = "would remove"
		}
		fmt.Fprintf(w, "%s %d of %d nodes, %s of %s\n", verb, report.Freed, report.Nodes, render.Size(report.FreedSize),
			render.Size(report.Bytes))
		if line != "" {
			fmt.Fprintln(w, line)
		}
	})
}

// collected is the result of gc.
type collected struct {
	gc.Report
	Files any `json:"files,omitempty"`
}

// forgetHome removes the record of a home that was deleted.
func (c *CLI) forgetHome(ctx context.Context, s *fsstore.Store, home string) error {
	known, err := s.Homes()
	if err != nil {
		return err
	}
	if _, err := os.Stat(home); err == nil {
		return cmdline.Invalid(fmt.Sprintf("--forget-home %s exists, so its threads may need the nodes", home),
			"to choose the homes whose threads to keep: "+c.Program+" gc --roots DIR")
	}
	if !slices.Contains(known, home) {
		return cmdline.NotFound(fmt.Sprintf("--forget-home %s is not a home that uses the store %s", home, s.Dir()))
	}
	return s.ForgetHome(ctx, home)
}

// homes returns the homes whose threads are kept: the given ones, or all that have used the store.
func (c *CLI) homes(s *fsstore.Store, named []string) ([]string, error) {
	if s.Originals() {
		return nil, nil // gc.Run returns an error
	}
	if len(named) > 0 {
		for i := range named {
			named[i] = c.Env.Path(named[i])
			if info, err := os.Stat(named[i]); err != nil || !info.IsDir() {
				hints := []string{"--roots names a home, such as ~/.uwf"}
				if near := suggest.File(c.Env.Dir, named[i]); near != "" {
					hints = append([]string{"did you mean --roots " + plaintext.Word(near) + "?"}, hints...)
				}
				return nil, cmdline.NotFound(fmt.Sprintf("--roots %s is not a directory", named[i]), hints...)
			}
		}
		return named, nil
	}
	dirs, err := c.Dirs()
	if err != nil {
		return nil, err
	}
	homes, err := s.Homes()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dirs.Home); err == nil && !slices.Contains(homes, dirs.Home) {
		homes = append(homes, dirs.Home)
	}
	if len(homes) == 0 {
		return nil, cmdline.UsageError(
			fmt.Sprintf("no home uses the store %s, so everything would be deleted", s.Dir()),
			"to name each home that uses it: "+c.Program+" gc --roots DIR")
	}
	for _, home := range homes {
		if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
			return nil, cmdline.NotFound(fmt.Sprintf("the home %s uses this store but does not exist", home),
				"mount it, or if it was deleted: "+c.Program+" gc --forget-home "+plaintext.Word(home))
		}
	}
	return homes, nil
}

// evicted is the result of fsck --evict.
type evicted struct {
	Hash cas.Hash `json:"evicted"`
	To   string   `json:"to"`
}

// evict moves a node to the quarantine, regardless of its content, so that other content with the
// same hash can be put. Otherwise the first content of a collision would block the other forever.
func (c *CLI) evict(ctx context.Context, s *fsstore.Store, arg string) error {
	h := cas.Hash(protocol.FoldCrockford(arg))
	if !h.Valid() {
		return cmdline.UsageError(fmt.Sprintf("--evict %q is not a hash", arg),
			c.Program+" fsck --evict <13 characters>")
	}
	if s.Kinds().InFoundation(h) {
		return cmdline.Invalid("node "+string(h)+" is a built-in schema and cannot be evicted", "to recreate it if it is damaged: "+c.Program+" fsck --repair")
	}
	there, err := s.Has(ctx, h)
	if err != nil {
		return err
	}
	if !there {
		return cmdline.NotFound("node not found: "+string(h), c.Program+" fsck")
	}
	_, err = s.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok && !redacted.Tombstone.Foreign {
		return cmdline.Invalid("node " + string(h) + " was redacted here, so its tombstone stays")
	}
	to, err := s.Quarantine(ctx, h)
	if err != nil {
		return err
	}
	return c.print(evicted{Hash: h, To: to}, func(w *bytes.Buffer) {
		fmt.Fprintf(w, "moved node %s to %s; put or import the right content, then: %s fsck\n", h, to, c.Program)
	})
}
