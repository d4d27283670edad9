// Package attacks judges what uwf confines, from outside: its tests run attack programs in a
// role that is a command and in run_command, and then look at what happened to the user's
// home, to git, to processes and to secrets. It knows uwf as a program only.
package attacks
