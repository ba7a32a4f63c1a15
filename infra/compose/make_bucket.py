"""Makes the warehouse's bucket unless it is there. Run by the init container, with its LAKE_S3_… settings."""

import os
from urllib.parse import urlsplit

import boto3

client = boto3.client(
    "s3",
    endpoint_url=os.environ["LAKE_S3_ENDPOINT"],
    region_name=os.environ["LAKE_S3_REGION"],
    aws_access_key_id=os.environ["LAKE_S3_ACCESS_KEY_ID"],
    aws_secret_access_key=os.environ["LAKE_S3_SECRET_ACCESS_KEY"],
)
bucket = urlsplit(os.environ["LAKE_WAREHOUSE"]).netloc
if bucket not in {found["Name"] for found in client.list_buckets()["Buckets"]}:
    client.create_bucket(Bucket=bucket)
