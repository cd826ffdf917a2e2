show tblproperties `demo`.`orders__base`;

-- nothing new
