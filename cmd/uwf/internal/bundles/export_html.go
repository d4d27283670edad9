package bundles

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

// exportedPage answers thread export --html.
type exportedPage struct {
	File   string `json:"file"`
	Thread string `json:"thread"`
}

func (a Commands) exportHTML(ctx context.Context, c *ucli.Context) error {
	if c.Bool("all") || c.Args().Len() != 1 {
		return cmdline.UsageError("--html is for one thread", "uwf thread export @ --html -o run.html")
	}
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	looked := watch(e.Store)
	e.Store = looked
	defer func() { a.warnOfKeys(looked, id) }()
	output := c.String("output")
	if output == "-" {
		if terminal.Is(a.Env.Stdout) {
			return cmdline.UsageError("a page is not for a terminal", "-o run.html")
		}
		return writePage(ctx, a.Env.Stdout, e, id, c.Bool("files"))
	}
	path := a.Env.Path(output)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return cmdline.UsageError(output+" is not a file", "--output "+plaintext.Word(filepath.Join(output, "run.html")))
	}
	f, err := durable.Create(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cmdline.NotFound("there is no directory for "+output, "mkdir -p "+plaintext.Word(filepath.Dir(path)))
	}
	if err != nil {
		return err
	}
	if err := writePage(ctx, f, e, id, c.Bool("files")); err != nil {
		return errors.Join(err, f.Abort())
	}
	if err := f.Commit(0o600); err != nil { // what is in a run is its owner's
		return err
	}
	return a.Print(exportedPage{File: output, Thread: id}, func(w io.Writer) error {
		return term.TextLines(w, output, "thread "+id)
	})
}

func writePage(ctx context.Context, w io.Writer, e *engine.Engine, id string, diffs bool) error {
	out := bufio.NewWriter(w)
	return errors.Join(htmlpage.Export(ctx, out, e, id, diffs), out.Flush())
}
