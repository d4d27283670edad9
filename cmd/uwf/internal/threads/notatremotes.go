package threads

import (
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/cmdline"
)

// notAtRemotes lets each command that has no --remote say why, and what to type instead.
func notAtRemotes(commands []*ucli.Command) []*ucli.Command {
	for _, cmd := range commands {
		if slices.ContainsFunc(cmd.Flags, func(f ucli.Flag) bool { return slices.Contains(f.Names(), "remote") }) {
			continue
		}
		cmd.Flags = append(cmd.Flags, &ucli.StringFlag{Name: "remote", Hidden: true})
		do := cmd.Action
		cmd.Action = func(c *ucli.Context) error {
			if !c.IsSet("remote") {
				return do(c)
			}
			why, hints := notAtRemote(c.Command.Name)
			return cmdline.UsageError(c.Command.HelpName+" has no --remote: "+why, hints...)
		}
	}
	return commands
}

func notAtRemote(command string) (why string, hints []string) {
	const whose = "uwf thread list --remote REMOTE says where it is worked on"
	switch command {
	case "stop":
		return "a remote carries no signals", []string{whose + ": stop it there", "uwf thread kill THREAD --remote REMOTE ends a thread that nobody works on"}
	case "message":
		return "a remote carries no messages to an agent at work", []string{whose + ": send it there", "uwf thread retry THREAD --remote REMOTE -p '…'", "uwf thread resume THREAD --remote REMOTE -p '…'"}
	case "watch":
		return "what an agent is doing is on its machine", []string{whose, "uwf thread wait THREAD --remote REMOTE"}
	case "start":
		return "a thread starts here", []string{"uwf push @ REMOTE takes it there", "uwf run WORKFLOW --remote REMOTE"}
	}
	return "it works on what is on this machine", []string{"uwf pull THREAD REMOTE brings the thread here first"}
}
