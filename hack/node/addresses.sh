# Names and addresses of the node, for the scripts beside this file.
# shellcheck shell=bash disable=SC2034
node_name=findings
group=findings-node
link=findings-host
marker=.findings-node # in a node's folder
host_address=10.243.0.1
node_address=10.243.0.2
pod_range=10.244.0.0/24
service_range=10.96.0.0/16
api_service_address=10.96.0.1
