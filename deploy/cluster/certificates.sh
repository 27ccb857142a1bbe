#!/bin/sh
# Makes a certificate authority in a folder, unless it is there, and certificates for nodes: sh certificates.sh FOLDER NAME ADDRESS [NAME ADDRESS ...]
# NAME.pem and NAME.key are for the node of this name; ca.pem is for all. ca.key stays where it was made: with it, everything can be done.
set -eu
if [ $(($# % 2)) -eq 0 ]; then
  echo "Each name needs an address: sh certificates.sh FOLDER NAME ADDRESS [NAME ADDRESS ...]" >&2
  exit 2
fi
umask 077
folder=$1
shift
mkdir -p "$folder"
cd "$folder"
new_key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
if [ ! -e ca.key ]; then
  openssl req -x509 $new_key -keyout ca.key -out ca.pem -days 3650 -subj "/CN=placement cluster" \
    -addext "keyUsage = critical, keyCertSign, cRLSign"
fi
while [ $# -gt 0 ]; do
  openssl req $new_key -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
  # Each node is a server and a client of the others.
  printf 'subjectAltName = DNS:%s, IP:%s\nextendedKeyUsage = serverAuth, clientAuth\n' "$1" "$2" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 -extfile "$1.ext" -out "$1.pem"
  rm "$1.csr" "$1.ext"
  shift 2
done
chmod 644 ./*.pem
