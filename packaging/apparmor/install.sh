#!/bin/sh
# Loads the AppArmor profile of uwf-box where AppArmor knows user namespaces (4.0 or newer, as in
# Ubuntu 24.04). An older parser refuses the profile, and needs none.
#
#   install.sh PROFILE    needs root; the .deb and the GitHub action run it
set -eu

profile=$1
to=/etc/apparmor.d/uwf-box
if [ ! -e /etc/apparmor.d/abi/4.0 ] || ! command -v apparmor_parser >/dev/null; then
	exit 0
fi
[ -e "$to" ] || install -m 644 "$profile" "$to" # an administrator's own stays
# A container has the parser, and not the rights.
apparmor_parser --replace "$to" || echo "uwf: the AppArmor profile $to could not be loaded: commands may run without namespaces (uwf doctor)" >&2
