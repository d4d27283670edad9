package threads

import (
	"context"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

// keepFilesFlag is that of commands that put files back.
func keepFilesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "keep-files", Usage: "leave all files as they are, even if an interrupted change of them is incomplete"}
}

func (a Commands) threadUndoCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "undo", ArgsUsage: "<thread>", Usage: "take a thread, and its files, one step back",
		Description: "A completed thread is active again. The files are those before the step, if they were kept and nobody\n" +
			"has changed them since; files that git ignores stay. uwf thread redo goes forward again, until the\n" +
			"thread makes another step.",
		Flags: []ucli.Flag{keepFilesFlag()},
	}, func(ctx context.Context, c *ucli.Context) error { return a.travel(ctx, c, (*engine.Engine).Undo) })
}

func (a Commands) threadRedoCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "redo", ArgsUsage: "<thread>", Usage: "restore the step that was undone, with its files",
		Flags: []ucli.Flag{keepFilesFlag()},
	}, func(ctx context.Context, c *ucli.Context) error { return a.travel(ctx, c, (*engine.Engine).Redo) })
}

// travel moves a thread and says where it stands.
func (a Commands) travel(ctx context.Context, c *ucli.Context, move func(*engine.Engine, context.Context, string, engine.UndoOptions) (protocol.StepOutput, error)) error {
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	out, err := move(e, ctx, id, engine.UndoOptions{KeepFiles: c.Bool("keep-files")})
	if err != nil {
		return err
	}
	if changed := app.FilesText([]protocol.StepOutput{out}); changed != "" {
		a.Say("files put back: %s", changed)
	}
	return a.Stands(app.OutcomeAt(ctx, e, out, nil), false, nil)
}
