package cli

import (
	"context"
	"errors"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/terminal"
)

// remoteCommand is uwf remote.
func (a commands) remoteCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "remote", Usage: "other places that hold threads: a directory, another machine, a database",
		Description: "   uwf remote add team build@ci.example:threads\n" +
			"   uwf push @ team                         # take a thread there\n" +
			"   uwf pull 01M7Z… team                    # bring it here\n" +
			"   uwf thread step 01M7Z… --remote team    # one step of it, from anywhere",
		Subcommands: append(remotes.New(a.App).Named(),
			a.Leaf(ucli.Command{
				Name: "serve", ArgsUsage: "<directory>", Usage: "be a remote for one client, on stdin and stdout; ssh starts it",
				Description: "The directory is a home of its own, and made by the first push; it may also be one that somebody\n" +
					"works in. In ~/.ssh/authorized_keys, command=\"uwf remote serve /srv/team\" lets a key do nothing else.\n" +
					"The protocol is that of docs/remotes.md.",
			}, a.remoteServe),
		),
	})
}

func (a commands) remoteServe(ctx context.Context, c *ucli.Context) error {
	if terminal.Is(a.Env.Stdout) {
		return cmdline.UsageError("it speaks a protocol, and not to a terminal", "uwf remote add <name> host:path")
	}
	dir, err := home.Absolute(a.Env, c.Args().First())
	if err != nil {
		return err
	}
	err = wire.Serve(ctx, a.Env.Stdin, a.Env.Stdout, func(ctx context.Context, h wire.Hello) (remote.Remote, error) {
		return storeremote.Open(ctx, dir, storeremote.Options{Hash: h.Hash, Program: "uwf " + cmdline.Version(), Now: a.Env.Now})
	})
	var wrong *remote.FaultError
	if errors.As(err, &wrong) {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: "the client: " + wrong.Error(), Err: err}
	}
	return err
}
